"""What Delta Lake is: names, schemas, properties, protocol features, clients. Knows nothing of tablectl."""
