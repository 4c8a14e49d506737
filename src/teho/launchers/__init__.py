"""What starts a program's processes in a job: each launcher is one file here."""
