"""What is known before the first launch. It seeds and orders; it never replaces a measurement.

prior       what a prior predicts: a load curve a deployment
registry    roofline | simulator | studies | published
ladder      the load levels that are predicted
neighbours  from what is known of some deployments to all
worth       predictions on the study's scale: calibrated by its baseline, judged by its objective
trust       how far a prior is followed: its agreement with what was measured
voice       one prior in one study: what it predicted, calibrated, and its weight
guide       what the search asks: seeds, expected curves, the order among equals
lead        the guide of a study that was under way already
record      predicted beside measured, from the journal
"""
