"""Runs the emulator with a bus that takes events of AWS itself.

No client may send an event whose source is AWS; EC2 is outside the emulator here, and does.
"""
from ministack import app
from ministack.services import eventbridge

put_events = eventbridge._put_events
eventbridge._put_events = lambda data, allow_aws_source=False: put_events(data, True)

if __name__ == "__main__":
    app.main()
