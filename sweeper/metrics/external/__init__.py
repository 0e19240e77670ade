"""Result files of other benchmark clients, read into the metrics of this one. Pure."""
