"""The service: HTTP doors, the story of a call, engines and stores. Importing it does nothing."""
