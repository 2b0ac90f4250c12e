"""What is too long for one slide: splitting of documents, texts and tables."""
