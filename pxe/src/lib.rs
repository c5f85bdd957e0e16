//! Network boot: DHCP, TFTP and HTTP sockets around pxe-proto.
