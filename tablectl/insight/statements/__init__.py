"""Users' SQL statements: which partitions each reads and writes, and whether two of them conflict."""
