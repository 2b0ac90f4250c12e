"""What knows language: token counts and embeddings, from models that come with packages and run offline."""
