"""From a declared and a live table to a plan: diff, decide, lint, order. Pure: values in, values out."""
