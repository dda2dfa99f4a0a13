"""REST bodies: serializers of requests and answers."""
