"""The protocols of an engine, and their implementation on Spark. Nothing else in tablectl imports pyspark."""
