"""What failed launches teach of others, as a pure function of the journal.

journal ──► teachings (one table: which way is worse, and why) ──► bounds
                                                                     │
candidate ──► inside a bound? ──► refused, with the trial that taught it
"""
