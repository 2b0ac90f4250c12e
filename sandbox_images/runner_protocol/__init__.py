"""What the service and the runner in the sandbox image have to agree on; standard library only, cheap to import."""
