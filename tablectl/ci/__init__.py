"""What a CI job does in addition to the commands: summary, pull request comment, and finding the reviewed plan."""
