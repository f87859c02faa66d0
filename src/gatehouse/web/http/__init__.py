"""What every endpoint shares: request context, routing, errors, parsing, responses, OpenAPI."""
