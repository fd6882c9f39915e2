def test_a_loss_that_is_not_zero_is_not_written_as_zero() -> None:
    """A comment said "concurrent writes fail once", and beside it "expected loss: 0.0 failed writes"."""
    assert ExpectedLoss(0.02, 0.4).text() == "less than 0.1 failed writes, 0 s of work"
    assert ExpectedLoss().text() == "0.0 failed writes, 0 s of work"
