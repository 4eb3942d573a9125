"""What stands between a check and a student's code: data, and a process to hold it.

The package runs on both sides, or on the student's alone. It holds no secret.
"""
