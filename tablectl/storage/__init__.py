"""Object stores and disks: opens logs and records, and explains failures."""
