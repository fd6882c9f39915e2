"""What every result is shown as: documents, from which `reports/` renders every format."""
