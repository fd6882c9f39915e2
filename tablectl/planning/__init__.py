"""Plans changes: compares policies with live tables, decides on actions, lints, and orders statements. Pure."""
