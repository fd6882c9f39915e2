"""What every package may use: bounded requests, processes, threads and files."""
