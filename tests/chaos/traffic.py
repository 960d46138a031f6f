"""Produces a run's messages at a steady rate, and reads the dead-letter topic."""
import functools
import random
import threading
import time

from events import BATCH, DAY, MINUTE, USERS, Epoch, Expected
from kafka_server import KafkaException
from services import Failure
from world import DEAD_LETTERS, TOPIC

from confluent_kafka import Consumer, Producer, TopicPartition

RETENTION = 32 * DAY
ALLOWED_FUTURE = 5 * MINUTE
USUAL_RATE = 2000  # messages per second


def now_ms():
    return int(time.time() * 1000)


class Traffic:
    """Everything that it has handed to Kafka's client reaches Kafka: the client tries for as long as it takes."""

    def __init__(self, brokers, seed, rate):
        self.brokers, self.seed, self.rate = brokers, seed, rate
        # More traffic is more users, as many events of each.
        self.users = max(USERS, USERS * rate // USUAL_RATE)
        self.flowing, self.ended, self.idle = threading.Event(), threading.Event(), threading.Event()
        self.idle.set()
        self.epochs = self.messages = 0
        self.dead_letters_deleted_at = 0
        self.begin_epoch()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def begin_epoch(self):
        """A producer belongs to one creation of the topic."""
        self.epoch, self.expected, self.judged = Epoch(self.seed, self.epochs, self.users), Expected(), 0
        self.epochs += 1
        self.dead, self.delivered, self.delivered_at = {}, [], []
        self.producer = Producer({"bootstrap.servers": self.brokers, "acks": "all", "message.timeout.ms": 0, "linger.ms": 5,
                                  "log_level": 2, "queue.buffering.max.messages": 1_000_000})
        self.certain = list(self.epoch.certain_messages(now_ms()))
        for message in self.certain:
            self.send(message, lambda error, _: None)
            self.expected.add(message, 0, now_ms())
        if self.producer.flush(120):
            raise Failure("the broker took no message for 120 s")

    def send(self, message, delivered):
        while True:
            try:
                self.producer.produce(TOPIC, message.value, message.user, on_delivery=delivered)
                self.messages += 1
                return
            except BufferError:
                self.producer.poll(0.1)

    def run(self):
        due = time.monotonic()
        while not self.ended.is_set():
            if not self.flowing.is_set():
                self.idle.set()
                self.flowing.wait(0.1)
                due = time.monotonic()
                continue
            self.idle.clear()
            self.produce_batch()
            due = max(due + BATCH / self.rate, time.monotonic() - 1)
            while (left := due - time.monotonic()) > 0:
                self.producer.poll(min(left, 0.01))

    def produce_batch(self):
        batch = len(self.delivered)
        self.delivered.append(0)
        self.delivered_at.append(None)
        for message in self.epoch.batch(now_ms()):
            self.send(message, functools.partial(self.on_delivery, batch))
            if message.dead:
                self.dead[message.value] = now_ms()

    def on_delivery(self, batch, error, _):
        self.delivered[batch] += not error
        if self.delivered[batch] == BATCH:
            self.delivered_at[batch] = time.time()

    def flow(self):
        self.flowing.set()

    def pause(self):
        """Returns once Kafka has all."""
        self.flowing.clear()
        if not self.idle.wait(180):
            raise Failure("the thread that produces messages does not end its batch")
        if self.producer.flush(180):
            raise Failure("the broker took no message for 180 s")
        if undelivered := [batch for batch, count in enumerate(self.delivered) if count != BATCH]:
            raise Failure(f"{len(undelivered)} batches of messages were not delivered")

    def end(self):
        self.flowing.clear()
        self.ended.set()
        self.thread.join(30)

    def expect(self):
        """What the ledgers must hold, now that all is delivered."""
        last = len(self.epoch.made_at) * BATCH
        for n in range(self.judged, last):
            made_at = self.epoch.made_at[n // BATCH]
            if not (message := self.epoch.message(n)).dead:
                self.expected.add(message, made_at - RETENTION, made_at + ALLOWED_FUTURE)
        self.judged = last
        return self.expected

    def sample(self, before, count):
        """Up to `count` messages of this creation of the topic that Kafka had, and that were made, before this time."""
        epoch, delivered_at = self.epoch, self.delivered_at
        batches = [random.randrange(len(delivered_at)) for _ in range(count)] if delivered_at else []
        return [epoch.message(BATCH * batch + random.randrange(BATCH)) for batch in batches
                if delivered_at[batch] and delivered_at[batch] < before and epoch.made_at[batch] < 1000 * before]

    def missing_dead_letters(self):
        """Those that the topic lacks. It was deleted now and then, with what it held: those of before may be missing."""
        found = set(dead_letters(self.brokers))
        return [value for value, made in self.dead.items() if made > self.dead_letters_deleted_at and value not in found]


def dead_letters(brokers):
    """What the topic holds now."""
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": "chaos-judge", "enable.auto.commit": False, "log_level": 2})
    try:
        partition = TopicPartition(DEAD_LETTERS, 0)
        _, end = consumer.get_watermark_offsets(partition, 30)
        partition.offset = 0
        consumer.assign([partition])
        at, until = 0, time.monotonic() + 60
        while at < end and time.monotonic() < until:
            for message in consumer.consume(1000, 1):
                if not message.error():
                    at = message.offset() + 1
                    yield message.value()
    except KafkaException as error:
        raise Failure(f"the dead letters could not be read: {error}") from None
    finally:
        consumer.close()
