"""One file per attribute of a table: its YAML shape, how it is read from a live table, what is done to change it."""
