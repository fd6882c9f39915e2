"""Object stores and disks: how logs and records are opened, and how their failures read."""
