"""The attributes of a table, one file each: what a policy may declare, how to read it from a table, how to
change it.
"""
