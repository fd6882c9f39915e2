"""Answers about concurrency that no plan and no apply needs: the matrix, two statements, advice, and terms.

The core imports nothing of it. Only ``commands`` does.
"""
