"""What the scheduler's accounting, a site's monitoring and users' own logs know of any job."""
