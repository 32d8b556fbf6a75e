// The plainest loops that send and receive datagrams, for the application `udp-loop`: landspeed is compared with them where
// no tool sends in the same way.
//
//   udp-loop send    plain|batch|gso ADDRESS PORT SECONDS
//   udp-loop receive plain|batch|gso ADDRESS PORT           prints the rate from the first datagram to the last
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#define UDP_GRO 104
#endif

enum {
	SIZE = 1472,
	BATCH = 32,            // datagrams of a sendmmsg or recvmmsg, as in landspeed
	SEGMENTS = 65507 / SIZE, // datagrams of a send with UDP_SEGMENT: as many as one IPv4 packet can hold
	CALLS = 32,            // calls between two reads of the clock
	LIMIT_S = 30,
	SILENCE_MS = 50,
};

static char buffer[1 << 16];
static struct iovec part[BATCH];
static struct mmsghdr batch[BATCH];

// Returns the datagrams that a call moved, or -1 if it failed.
static long send_some(int fd, char way)
{
	size_t length = way == 'g' ? SEGMENTS * SIZE : SIZE;

	if (way == 'b')
		return sendmmsg(fd, batch, BATCH, 0);
	ssize_t sent = send(fd, buffer, length, 0);
	return sent < 0 ? -1 : sent / SIZE;
}

static long receive_some(int fd, char way)
{
	if (way == 'b')
		return recvmmsg(fd, batch, BATCH, MSG_WAITFORONE, NULL);
	ssize_t got = recv(fd, buffer, sizeof buffer, 0);
	return got < 0 ? -1 : got / SIZE;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

// The receiver may not listen yet: its host then refuses what comes.
static void sender(int fd, char way, double seconds)
{
	double start = now();

	do {
		for (int i = 0; i < CALLS; i++)
			if (send_some(fd, way) < 0 && errno != ENOBUFS && errno != ECONNREFUSED)
				err(1, "send");
	} while (now() - start < seconds);
}

// Receives until no datagram has arrived for a time after the first one.
static void receiver(int fd, char way)
{
	struct timeval silence = { .tv_usec = SILENCE_MS * 1000 };
	double start = 0;
	long received = 0, n;

	while ((n = receive_some(fd, way)) >= 0) {
		if (!received && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof silence))
			err(1, "SO_RCVTIMEO");
		if (!received)
			start = now();
		received += n;
	}
	if (errno != EAGAIN)
		err(1, "receive");
	printf("%.0f b/s\n", 8.0 * SIZE * received / (now() - start - SILENCE_MS / 1e3));
}

int main(int argc, char **argv)
{
	if (argc < 5)
		errx(2, "udp-loop send|receive WAY ADDRESS PORT [SECONDS]");
	int sends = !strcmp(argv[1], "send"), one = 1, size = SIZE;
	char way = argv[2][0];
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(atoi(argv[4])) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	alarm(LIMIT_S);
	for (int i = 0; i < BATCH; i++) {
		part[i] = (struct iovec){ buffer + i * SIZE, SIZE };
		batch[i].msg_hdr.msg_iov = &part[i];
		batch[i].msg_hdr.msg_iovlen = 1;
	}
	inet_pton(AF_INET, argv[3], &at.sin_addr);
	if ((sends ? connect : bind)(fd, (struct sockaddr *)&at, sizeof at))
		err(1, "%s", argv[3]);
	if (way == 'g' && setsockopt(fd, IPPROTO_UDP, sends ? UDP_SEGMENT : UDP_GRO, sends ? &size : &one, sizeof one))
		err(1, "UDP_SEGMENT or UDP_GRO");
	if (sends)
		sender(fd, way, argc > 5 ? atof(argv[5]) : 1);
	else
		receiver(fd, way);
}
