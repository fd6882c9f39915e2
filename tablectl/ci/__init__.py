"""What a job of CI does beside the commands: summary, comment on a pull request, the plan that was reviewed."""
