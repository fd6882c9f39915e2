"""The lease and the guards of a table, as stored next to it: both an apply and a writer read and write them."""
