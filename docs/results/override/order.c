// SPDX-License-Identifier: MIT OR GPL-2.0-only
// Numbered bytes, both ways at once over many connections, with random sizes and delays: order CONNECTIONS. It fails where one is lost
// or out of place, and says how often a blocking recv gave EAGAIN.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { THREADS = 12, ROOM = 400000 };
struct stream { int fd; uint32_t id; };
static atomic_long wrong, again, bytes, done;
static atomic_uint next;
static unsigned connections;
static struct sockaddr_in at = { AF_INET, 0, { 0 } };

static uint64_t draw(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	return *state ^= *state << 17;
}

/* Of connection and way. */
static uint64_t seed(uint32_t id) { uint64_t state = (id + 1) * 0x9e3779b97f4a7c15ull; draw(&state); return draw(&state); }
static uint8_t byte(uint64_t seed, long at) { return ((at >> 3) * 0x9e3779b97f4a7c15ull + seed) >> (56 - 8 * (at & 7)) ^ at; }
static long total(uint64_t seed) { return seed % 10 < 5 ? seed % 3000 : seed % 10 < 9 ? seed % 300000 : seed % 6000000; }

static void *writes(void *of)
{
	static const int SIZES[] = { 20, 20, 20, 5000, 5000, 5000, 60000, ROOM };
	struct stream *stream = of;
	uint64_t own = seed(stream->id), state = own;
	uint8_t *room = malloc(ROOM);
	for (long from = 0, all = total(own); from < all;) {
		long size = 1 + draw(&state) % SIZES[draw(&state) % 8];
		if (size > all - from)
			size = all - from;
		for (long i = 0; i < size; i++)
			room[i] = byte(own, from + i);
		for (long put = 0, count; put < size; put += count)
			if ((count = send(stream->fd, room + put, size - put, MSG_NOSIGNAL)) <= 0)
				exit((perror("send"), 1));
		from += size;
		if (draw(&state) % 64 == 0)
			usleep(draw(&state) % 500);
	}
	/* What was sent is still in the receiver's queue. */
	shutdown(stream->fd, SHUT_WR);
	free(room);
	return 0;
}

static void reads(int fd, uint32_t id)
{
	uint64_t other = seed(id), state = ~other;
	uint8_t *room = malloc(ROOM);
	long from = 0, count;
	int is_wrong = 0;
	for (;;) {
		if (draw(&state) % 32 == 0)
			usleep(draw(&state) % 2000);
		count = recv(fd, room, 1 + draw(&state) % (draw(&state) % 4 ? 4000 : ROOM), 0);
		if (count < 0 && errno == EAGAIN) {
			again++;
			continue;
		}
		if (count <= 0)
			break;
		for (long i = 0; i < count && !is_wrong; i++)
			if (room[i] != byte(other, from + i)) {
				is_wrong = 1;
				fprintf(stderr, "stream %u: another byte at %ld\n", id, from + i);
			}
		from += count;
	}
	if (count || from != total(other)) {
		is_wrong = 1;
		fprintf(stderr, "stream %u: %ld of %ld bytes\n", id, from, total(other));
	}
	wrong += is_wrong;
	bytes += from;
	free(room);
}

static void both(int fd, uint32_t out, uint32_t in)
{
	struct stream stream = { fd, out };
	pthread_t writer;
	pthread_create(&writer, 0, writes, &stream);
	reads(fd, in);
	pthread_join(writer, 0);
	close(fd);
	done++;
}

static void *serves(void *of)
{
	int fd = (long)of;
	uint32_t id;
	if (recv(fd, &id, sizeof id, 0) != sizeof id)
		exit((perror("no number"), 1));
	both(fd, 2 * id + 1, 2 * id);
	return 0;
}

static void *asks(void *none)
{
	for (uint32_t id; (id = next++) < connections;) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(fd, (void *)&at, sizeof at) || send(fd, &id, sizeof id, 0) != sizeof id)
			exit((perror("connect"), 1));
		both(fd, 2 * id, 2 * id + 1);
	}
	return none;
}

int main(int count, char **words)
{
	connections = count > 1 ? atoi(words[1]) : 300;
	alarm(300);
	socklen_t size = sizeof at;
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	bind(listener, (void *)&at, size);
	listen(listener, 1000);
	getsockname(listener, (void *)&at, &size);
	pthread_t thread;
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread, 0, asks, 0);
	for (unsigned i = 0; i < connections; i++) {
		long fd = accept(listener, 0, 0);
		pthread_create(&thread, 0, serves, (void *)fd);
		pthread_detach(thread);
	}
	while (done < 2 * (long)connections)
		usleep(10000);
	printf("%u connections, %ld bytes: %ld streams wrong, %ld times EAGAIN from a blocking recv\n", connections, bytes, wrong, again);
	return wrong != 0;
}
