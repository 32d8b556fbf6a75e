// Echoes, or sends random bytes on connections at once and compares what comes back: echo server|client PORT [CONNECTIONS]
package main

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
)

func echo(connection *net.TCPConn) {
	io.Copy(connection, connection)
	connection.CloseWrite()
	connection.Close()
}

func serve(address string) error {
	listener, err := net.Listen("tcp", address)
	for err == nil {
		var connection net.Conn
		if connection, err = listener.Accept(); err == nil {
			go echo(connection.(*net.TCPConn))
		}
	}
	return err
}

func ask(address string) error {
	connection, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer connection.Close()
	sent := make([]byte, 262144)
	rand.Read(sent)
	go func() {
		connection.Write(sent)
		connection.(*net.TCPConn).CloseWrite()
	}()
	came, err := io.ReadAll(connection)
	if err == nil && !bytes.Equal(came, sent) {
		err = fmt.Errorf("other bytes: %d", len(came))
	}
	return err
}

func main() {
	address := "127.0.0.1:" + os.Args[2]
	if os.Args[1] == "server" {
		fmt.Println(serve(address))
		os.Exit(1)
	}
	connections, _ := strconv.Atoi(os.Args[3])
	var asking sync.WaitGroup
	for made := 0; made < connections; made++ {
		asking.Add(1)
		go func() {
			defer asking.Done()
			if err := ask(address); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
		}()
	}
	asking.Wait()
}
