"""SQL statements of users: which partitions each reads and writes, and whether two of them conflict."""
