// The other end of tests/libudt, with Debian's libudt:
//     peer listen IP PORT stream|messages MSS     prints its port, receives until the connection ends, writes what it received
//     peer connect IP PORT stream|messages MSS    sends what it reads, closes
// A connection of messages is only asked for: the other end refuses it.

#include <arpa/inet.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>
#include <udt/udt.h>

static const size_t ROOM = 1 << 20;
static const size_t PIECE = 1 << 16;

static int fail(const char* what) {
    fprintf(stderr, "%s: %s\n", what, UDT::getlasterror().getErrorMessage());
    return 1;
}

struct Address {
    sockaddr_storage storage = {};
    int size = 0;
    int family = AF_INET;

    sockaddr* raw() { return (sockaddr*)&storage; }
    in_port_t* port() {
        return family == AF_INET ? &((sockaddr_in*)&storage)->sin_port : &((sockaddr_in6*)&storage)->sin6_port;
    }
};

static Address address(const char* ip, int port) {
    Address there;
    there.family = strchr(ip, ':') ? AF_INET6 : AF_INET;
    bool is_old = there.family == AF_INET;
    there.size = is_old ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    there.storage.ss_family = there.family;
    void* place = is_old ? (void*)&((sockaddr_in*)&there.storage)->sin_addr
                         : (void*)&((sockaddr_in6*)&there.storage)->sin6_addr;
    inet_pton(there.family, ip, place);
    *there.port() = htons(port);
    return there;
}

static UDTSOCKET make(int family, bool stream, int mss) {
    UDTSOCKET socket = UDT::socket(family, stream ? SOCK_STREAM : SOCK_DGRAM, 0);
    UDT::setsockopt(socket, 0, UDT_MSS, &mss, sizeof mss);
    return socket;
}

static int listen(Address here, bool stream, int mss) {
    UDTSOCKET socket = make(here.family, stream, mss);
    if (UDT::bind(socket, here.raw(), here.size) == UDT::ERROR || UDT::listen(socket, 1) == UDT::ERROR)
        return fail("listen");
    UDT::getsockname(socket, here.raw(), &here.size);
    printf("%d\n", ntohs(*here.port()));
    fflush(stdout);
    UDTSOCKET peer = UDT::accept(socket, here.raw(), &here.size);
    if (peer == UDT::INVALID_SOCK)
        return fail("accept");
    std::vector<char> room(ROOM);
    for (;;) {
        int got = UDT::recv(peer, room.data(), ROOM, 0);
        if (got <= 0)
            break;
        fwrite(room.data(), 1, got, stdout);
        fflush(stdout);
    }
    return 0;
}

static int connect(Address there, bool stream, int mss) {
    UDTSOCKET socket = make(there.family, stream, mss);
    if (UDT::connect(socket, there.raw(), there.size) == UDT::ERROR)
        return fail("connect");
    std::vector<char> room(ROOM);
    for (;;) {
        size_t got = fread(room.data(), 1, PIECE, stdin);
        for (size_t sent = 0; sent < got;) {
            int done = UDT::send(socket, &room[sent], got - sent, 0);
            if (done == UDT::ERROR)
                return fail("send");
            sent += done;
        }
        if (got < PIECE)
            break;
    }
    UDT::close(socket);
    return 0;
}

int main(int count, char** words) {
    if (count != 6)
        return 2;
    UDT::startup();
    Address address = ::address(words[2], atoi(words[3]));
    bool stream = !strcmp(words[4], "stream");
    int mss = atoi(words[5]);
    int code = !strcmp(words[1], "listen") ? listen(address, stream, mss) : connect(address, stream, mss);
    UDT::cleanup();
    return code;
}
