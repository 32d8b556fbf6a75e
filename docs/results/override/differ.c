// SPDX-License-Identifier: MIT OR GPL-2.0-only
// What two connected TCP sockets do, one line a case. Run it alone and with ./run, and compare (make compare).
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int a, b;
static pthread_t self;
static char bytes[8 << 20];

static void connect_both(void)
{
	struct sockaddr_in at = { AF_INET, 0, { htonl(INADDR_LOOPBACK) } };
	socklen_t size = sizeof at;
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	bind(listener, (void *)&at, size);
	listen(listener, 8);
	getsockname(listener, (void *)&at, &size);
	a = socket(AF_INET, SOCK_STREAM, 0);
	connect(a, (void *)&at, size);
	b = accept(listener, 0, 0);
	close(listener);
}

static long sent(const char *what) { return send(a, what, strlen(what), 0); }
static long came(int most, int flags) { return recv(b, bytes, most, flags); }

/* ---- what another thread does 200 ms later ---- */

static void nine_bytes(void) { sent("123456789"); }
static void end_reading(void) { shutdown(b, SHUT_RD); }
static void interrupt(void) { pthread_kill(self, SIGUSR1); usleep(200000); sent("x"); }
static void reset(void) { struct linger now = { 1, 0 }; setsockopt(a, SOL_SOCKET, SO_LINGER, &now, sizeof now); close(a); }
static void read_all(void) { while (recv(a, bytes, 65536, MSG_DONTWAIT) > 0) usleep(100); usleep(300000); sent("x"); }
static void *later(void *does) { usleep(200000); ((void (*)(void))does)(); return 0; }
static void *send_much(void *none) { send(b, bytes, sizeof bytes, 0); return none; }

/* A blocking recv of one who has already read a byte, while that happens. */
static long blocked(void (*does)(void))
{
	pthread_t thread;
	sent("x");
	came(1, 0);
	pthread_create(&thread, 0, later, does);
	long count = came(9, 0);
	int error = errno;
	pthread_join(thread, 0);
	errno = error;
	return count;
}

/* ---- the cases ---- */

static long interrupted(void) { return blocked(interrupt); }
static long other_stops(void) { return blocked(end_reading); }
static long is_reset(void) { return blocked(reset); }

static long other_sends(void)
{
	pthread_t sender;
	pthread_create(&sender, 0, send_much, 0);
	usleep(100000);
	long count = blocked(read_all);
	int error = errno;
	shutdown(a, SHUT_RDWR);
	shutdown(b, SHUT_RDWR);
	pthread_join(sender, 0);
	errno = error;
	return count;
}

static long stopped(void)
{
	pid_t child = fork();
	if (!child)
		_exit(came(9, 0) < 0 ? errno : 0);
	usleep(200000);
	kill(child, SIGSTOP);
	usleep(100000);
	kill(child, SIGCONT);
	usleep(200000);
	sent("x");
	int status;
	waitpid(child, &status, 0);
	errno = WEXITSTATUS(status);
	return errno ? -1 : 1;
}

static long waitall(void)
{
	pthread_t thread;
	sent("0");
	pthread_create(&thread, 0, later, nine_bytes);
	long count = came(10, MSG_WAITALL);
	pthread_join(thread, 0);
	return count;
}

static long low_water(void)
{
	int most = 10;
	setsockopt(b, SOL_SOCKET, SO_RCVLOWAT, &most, sizeof most);
	sent("0");
	struct pollfd one = { b, POLLIN, 0 };
	return poll(&one, 1, 100);
}

static long spliced(void)
{
	int ends[2];
	if (pipe(ends))
		return -1;
	sent("0123456789");
	usleep(50000);
	fcntl(b, F_SETFL, O_NONBLOCK);
	long count = splice(b, 0, ends[1], 0, 10, SPLICE_F_NONBLOCK);
	int error = errno;
	close(ends[0]);
	close(ends[1]);
	errno = error;
	return count;
}

static long urgent(void) { sent("01"); send(a, "!", 1, MSG_OOB); sent("23"); usleep(50000); return came(9, MSG_DONTWAIT); }
static long thrown(void) { sent("0123456789"); usleep(50000); return recv(b, 0, 10, MSG_TRUNC | MSG_DONTWAIT); }

static long completed(void)
{
	int on = 1;
	char room[200];
	struct msghdr about = { .msg_control = room, .msg_controllen = sizeof room };
	setsockopt(a, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on);
	send(a, bytes, 30000, MSG_ZEROCOPY);
	usleep(100000);
	return recvmsg(a, &about, MSG_ERRQUEUE | MSG_DONTWAIT);
}

static long counted(void) { int there = -1; sent("0123456789"); usleep(50000); return ioctl(b, FIONREAD, &there) ? -1 : there; }
static long after_close(void) { sent("0123456789"); close(a); usleep(50000); return came(4, 0) + came(9, 0) + came(9, 0); }
static long after_shutdown(void) { shutdown(a, SHUT_WR); return sent("x"); }

/* Megabytes that are taken where nobody reads: over 32 says that nothing holds the sender. */
static long unread(int size)
{
	long all = 0, count;
	fcntl(a, F_SETFL, O_NONBLOCK);
	while (all < 400l << 20 && (count = send(a, bytes, size, 0)) > 0)
		all += count;
	return all >> 20 < 32 ? 0 : all >> 20;
}

static long unread_large(void) { return unread(65536); }

static const struct { const char *name; long (*does)(void); } CASES[] = {
	{ "blocking recv, a signal with SA_RESTART, then a byte", interrupted },
	{ "blocking recv, SIGSTOP and SIGCONT, then a byte", stopped },
	{ "blocking recv, another thread waits in send on the socket, then a byte", other_sends },
	{ "blocking recv, another thread calls shutdown(SHUT_RD)", other_stops },
	{ "blocking recv, the peer resets", is_reset },
	{ "recv of 10 bytes with MSG_WAITALL; they come as 1 and 9", waitall },
	{ "poll with SO_RCVLOWAT of 10, one byte there", low_water },
	{ "splice from the socket, 10 bytes there", spliced },
	{ "01, an urgent byte, 23: recv", urgent },
	{ "MSG_TRUNC throws 10 bytes away", thrown },
	{ "MSG_ZEROCOPY completes", completed },
	{ "FIONREAD, 10 bytes there", counted },
	{ "10 bytes, close at once: all that is read", after_close },
	{ "send after shutdown(SHUT_WR)", after_shutdown },
	{ "sends of 64 KiB without a reader, MiB above 32", unread_large },
};

static void nothing(int signal) { (void)signal; }

int main(void)
{
	struct sigaction restarts = { .sa_handler = nothing, .sa_flags = SA_RESTART };
	sigaction(SIGUSR1, &restarts, 0);
	signal(SIGPIPE, SIG_IGN);
	alarm(60);
	self = pthread_self();
	for (unsigned at = 0; at < sizeof CASES / sizeof *CASES; at++) {
		connect_both();
		long count = CASES[at].does();
		if (count < 0)
			printf("%s: %s\n", CASES[at].name, strerrorname_np(errno));
		else
			printf("%s: %ld\n", CASES[at].name, count);
		fflush(stdout);
		close(a);
		close(b);
	}
}
