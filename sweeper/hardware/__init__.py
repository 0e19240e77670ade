"""What a study runs on: read off this machine, or described in conf/hardware."""
