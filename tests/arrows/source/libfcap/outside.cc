// A file in no folder of libfcap.
