"""The worker of web processes with short deadlines, which tests wait for."""

from portal.server import worker

RECEIVE_S = 3.0

worker.RECEIVE_S = RECEIVE_S
worker.SEND_S = RECEIVE_S
Worker = worker.Worker
