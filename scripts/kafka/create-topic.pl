#!/usr/bin/perl
# Usage: create-topic.pl PORT NAME PARTITIONS [key=value ...]
# Creates a topic on the broker at 127.0.0.1:PORT by one CreateTopics request (version 2 of Kafka's protocol),
# in milliseconds: Kafka's own tool needs a JVM for it. A topic that exists is left as it is and reported.
use strict;
use warnings;
use IO::Socket::INET;

use constant { CREATE_TOPICS => 19, VERSION => 2, TOPIC_ALREADY_EXISTS => 36, TIMEOUT_MS => 20_000 };

my ($port, $name, $partitions, @config) = @ARGV;
die "usage: create-topic.pl PORT NAME PARTITIONS [key=value ...]\n"
  unless defined $partitions && $partitions =~ /^[1-9]\d*$/;

sub text { my ($bytes) = @_; return pack('n a*', length $bytes, $bytes) }

my $settings = pack('N', scalar @config);
for my $pair (@config) {
    my ($key, $value) = $pair =~ /^([^=]+)=(.*)$/ or die "error: not key=value: $pair\n";
    $settings .= text($key) . text($value);
}
my $topic = text($name) . pack('N n', $partitions, 1) . pack('N', 0) . $settings;
my $body = pack('N', 1) . $topic . pack('N C', TIMEOUT_MS, 0);
my $request = pack('n n N', CREATE_TOPICS, VERSION, 1) . text('fcap-dev') . $body;

my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Timeout => 5)
  or die "error: no Kafka broker at 127.0.0.1:$port: $@\n";
$SIG{ALRM} = sub { die "error: the broker at 127.0.0.1:$port did not answer in 30 s\n" };
alarm 30;

sub read_exactly {
    my ($count) = @_;
    my $data = '';
    while (length $data < $count) {
        my $got = sysread $socket, $data, $count - length $data, length $data;
        die "error: the broker closed the connection\n" unless $got;
    }
    return $data;
}

my $message = pack('N', length $request) . $request;
(syswrite($socket, $message) // 0) == length $message or die "error: cannot write to the broker: $!\n";
my $reply = read_exactly(unpack 'N', read_exactly(4));

# correlation id, throttle time, one topic: name, error code, message (length 0xffff: none)
my (undef, undef, undef, $length) = unpack 'N N N n', $reply;
my ($code, $message_length) = unpack 'n n', substr $reply, 14 + $length;
my $why = $message_length == 0xffff ? '' : substr $reply, 18 + $length, $message_length;
if ($code == 0) { print "created=yes\n" }
elsif ($code == TOPIC_ALREADY_EXISTS) { print "created=no\n" }
else { die "error: topic $name: Kafka error $code $why\n" }
