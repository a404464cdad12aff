"""What several routers share: networks, neighbours, descriptions of models, saving and explaining. No method lives here."""
