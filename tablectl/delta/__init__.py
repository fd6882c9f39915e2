"""Delta Lake concepts: names, schemas, properties, protocol features and clients. Imports no other package of
tablectl.
"""
