"""Catalogs: where named tables are, which credentials reach them, and what a catalog says about tables it manages."""
