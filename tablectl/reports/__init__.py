"""A plan and a run, as people and machines read them. Values in, text out."""
