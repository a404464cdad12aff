"""What several routers share: networks, neighbours, descriptions of models. No method lives here."""
