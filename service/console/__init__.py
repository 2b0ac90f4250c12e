"""The console: a web page over the API, bundled from `source` into `static` by `make console`."""
