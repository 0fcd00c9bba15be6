#ifndef CLIENT_PROTOCOL_H
#define CLIENT_PROTOCOL_H

/*
 * The client's copy of the numbers of the control protocol, which kbisectd(8) documents. They are
 * those of daemon/control.h, which only the daemon may include.
 */

#define PROTOCOL_VERSION 1
#define PROTOCOL_SOCKET "/run/kbisectd/kbisectd.sock"
#define PROTOCOL_SOCKET_ENV "KBISECTD_SOCKET"

enum protocol_error {
	PROTOCOL_NO_METHOD = -32601,
	PROTOCOL_INVALID_PARAMS = -32602,
	PROTOCOL_NOT_FOUND = 1,
	PROTOCOL_DENIED = 2,
	PROTOCOL_REFUSED = 3,
	PROTOCOL_STATE = 4,
	PROTOCOL_BUSY = 5,
};

#endif
