"""What the seeds of a run have in common."""


def test_a_method_without_a_loss_has_no_training_settings(a_job):
    assert a_job("raw").train is None
    assert a_job("costa-sv", epochs=7).train.epochs == 7
