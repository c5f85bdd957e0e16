//! Network boot, pure: DHCP, TFTP and iPXE codecs and decisions.
