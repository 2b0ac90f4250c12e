"""Programs of previews; they run in a sandbox, each as one file without the imports of one another."""
