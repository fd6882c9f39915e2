"""The conflict rules by client family: which transaction fails because of which commits."""
