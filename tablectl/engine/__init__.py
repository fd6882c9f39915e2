"""The SQL port, and Spark behind it. Nothing else in tablectl imports pyspark."""
