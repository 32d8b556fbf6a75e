// SPDX-License-Identifier: MIT OR Apache-2.0

// A client, a proxy that copies with io.Copy, which calls splice(2), and a server that sends back what comes.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

func listen(serve func(net.Conn)) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go func() {
		for {
			if conn, err := listener.Accept(); err == nil {
				go serve(conn)
			}
		}
	}()
	return listener.Addr().String()
}

func main() {
	server := listen(func(conn net.Conn) {
		bytes := make([]byte, 100)
		for {
			count, err := conn.Read(bytes)
			if err != nil {
				return
			}
			conn.Write(bytes[:count])
		}
	})
	proxy := listen(func(conn net.Conn) {
		to, _ := net.Dial("tcp", server)
		go io.Copy(to, conn)
		io.Copy(conn, to)
	})
	conn, _ := net.Dial("tcp", proxy)
	conn.SetDeadline(time.Now().Add(3 * time.Second))
	conn.Write([]byte("hello"))
	count, err := io.ReadFull(conn, make([]byte, 5))
	fmt.Println("through the proxy came", count, "bytes, error:", err)
	if err != nil {
		os.Exit(1)
	}
}
