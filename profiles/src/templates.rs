//! Scripts and documents of profiles, rendered by minijinja.
//!
//! A profile's kernel arguments and files are templates over `node` and `volund`. Undefined names
//! are errors, never empty text. Rendering is a function of configuration, node and ticket: nothing else.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
};

use minijinja::{Environment, UndefinedBehavior};
use model::{
    MacAddr, NodeName, ProfileName, Ticket,
    boot::{ADDRESS_ARG, GATEWAY_ARG, TICKET_ARG, URL_ARG},
};
use plan::{NodeSpec, StoredScript, engine::Render};
use serde::Serialize;

/// What a profile starts, as the boot service serves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    /// Shown on the node's console.
    pub title: String,
    /// URL path of the kernel.
    pub kernel: String,
    /// URL paths of the initrds.
    pub initrds: Vec<String>,
    /// Kernel arguments: the agent's own, or a template.
    pub args: Args,
    /// Documents a ticket opens, by name: template text.
    pub documents: BTreeMap<String, String>,
}

/// Kernel arguments of a payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Args {
    /// volund's agent: ticket, URL and address, and these in front.
    Agent(String),
    /// A template.
    Template(String),
}

/// What a template may say of a node.
#[derive(Debug, Clone, Serialize)]
pub struct NodeFields {
    /// Name.
    pub name: NodeName,
    /// Its address. In a template: the one it boots from.
    pub address: Option<Ipv4Addr>,
    /// Prefix length of its network.
    pub prefix: u8,
    /// Its first MAC.
    pub mac: MacAddr,
    /// Router of its network, if any.
    pub router: Option<Ipv4Addr>,
    /// Enclosure, if any.
    pub enclosure: Option<String>,
    /// Bay, if any.
    pub bay: Option<u8>,
    /// Where it reaches the boot service.
    #[serde(skip)]
    pub http: Option<SocketAddr>,
}

/// Why a template gave no text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// No such profile, node or document.
    #[error("there is no {0}")]
    Unknown(String),
    /// The template is wrong or names something that is not there.
    #[error("{what}: {why}")]
    Template {
        /// Which template.
        what: String,
        /// What minijinja says, with its line.
        why: String,
    },
    /// Kernel arguments with a line break would be a second command of the boot script.
    #[error("the kernel arguments of {0} have a line break")]
    LineBreak(ProfileName),
}

/// All profiles' templates and all nodes' fields.
#[derive(Debug, Clone)]
pub struct Templates {
    payloads: BTreeMap<ProfileName, Payload>,
    nodes: BTreeMap<NodeName, NodeFields>,
}

#[derive(Serialize)]
struct Context<'a> {
    node: &'a NodeFields,
    volund: VolundFields,
}

#[derive(Serialize)]
struct VolundFields {
    url: String,
    ticket: String,
    done: String,
    files: String,
}

impl Templates {
    /// Templates of `payloads` over `nodes`.
    #[must_use]
    pub fn new(
        payloads: BTreeMap<ProfileName, Payload>,
        nodes: BTreeMap<NodeName, NodeFields>,
    ) -> Self {
        Self { payloads, nodes }
    }

    /// The document `name` of `profile` for `node`.
    ///
    /// # Errors
    /// [`TemplateError`] names the template and what is wrong with it.
    pub fn document(
        &self,
        node: &NodeName,
        profile: &ProfileName,
        name: &str,
        ticket: &Ticket,
        at: Ipv4Addr,
    ) -> Result<String, TemplateError> {
        let payload = self.payload(profile)?;
        let unknown = || TemplateError::Unknown(format!("document {name} in profile {profile}"));
        let text = payload.documents.get(name).ok_or_else(unknown)?;
        self.render(&format!("{profile}/{name}"), text, (node, at), ticket)
    }

    fn payload(&self, profile: &ProfileName) -> Result<&Payload, TemplateError> {
        let unknown = || TemplateError::Unknown(format!("profile {profile} with a kernel"));
        self.payloads.get(profile).ok_or_else(unknown)
    }

    fn make(
        &self,
        node: &NodeName,
        profile: &ProfileName,
        ticket: &Ticket,
        at: Ipv4Addr,
    ) -> Result<StoredScript, TemplateError> {
        let Payload { title, kernel, initrds, args, .. } = self.payload(profile)?;
        let args = match args {
            Args::Agent(extra) => self.agent_args((node, at), extra, ticket)?,
            Args::Template(text) => {
                self.render(&format!("{profile} args"), text, (node, at), ticket)?
            }
        };
        let args = args.trim().to_owned();
        if args.contains(['\n', '\r']) {
            return Err(TemplateError::LineBreak(profile.clone()));
        }
        let (title, kernel, initrds) = (title.clone(), kernel.clone(), initrds.clone());
        Ok(StoredScript { title, kernel, initrds, args })
    }

    /// The interface it boots from is named by the boot services, which know which MAC asked.
    fn agent_args(
        &self,
        (node, address): (&NodeName, Ipv4Addr),
        extra: &str,
        ticket: &Ticket,
    ) -> Result<String, TemplateError> {
        let fields = self.fields(node)?;
        let url = volund_fields(fields, ticket).url;
        let (ticket, NodeFields { prefix, .. }) = (ticket.reveal(), fields);
        let gateway = fields.router.map(|router| format!(" {GATEWAY_ARG}={router}"));
        let gateway = gateway.unwrap_or_default();
        Ok(format!(
            "{extra} {URL_ARG}={url} {TICKET_ARG}={ticket} {ADDRESS_ARG}={address}/{prefix}{gateway}"
        ))
    }

    fn fields(&self, node: &NodeName) -> Result<&NodeFields, TemplateError> {
        self.nodes.get(node).ok_or_else(|| TemplateError::Unknown(format!("node {node}")))
    }

    fn render(
        &self,
        what: &str,
        text: &str,
        (node, at): (&NodeName, Ipv4Addr),
        ticket: &Ticket,
    ) -> Result<String, TemplateError> {
        let node = NodeFields { address: Some(at), ..self.fields(node)?.clone() };
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        let context = Context { node: &node, volund: volund_fields(&node, ticket) };
        let context = minijinja::value::Serde(context);
        environment.render_str(text, context).map_err(|error| TemplateError::Template {
            what: what.to_owned(),
            why: match error.line() {
                Some(line) => format!("line {line}: {error}"),
                None => error.to_string(),
            },
        })
    }
}

fn volund_fields(node: &NodeFields, ticket: &Ticket) -> VolundFields {
    let url = node.http.map_or_else(String::new, |http| format!("http://{http}"));
    let ticket = ticket.reveal().to_owned();
    let files = format!("{url}/t/{ticket}");
    VolundFields { done: format!("{files}/done"), files, url, ticket }
}

impl Render for Templates {
    fn script(
        &self,
        node: &NodeSpec,
        profile: &ProfileName,
        ticket: &Ticket,
        at: Ipv4Addr,
    ) -> Result<StoredScript, String> {
        self.make(&node.name, profile, ticket, at).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn templates(args: Args, document: &str) -> Templates {
        let payload = Payload {
            title: "Debian".to_owned(),
            kernel: "/i/debian/vmlinuz".to_owned(),
            initrds: vec![],
            args,
            documents: [("user-data".to_owned(), document.to_owned())].into(),
        };
        let name: NodeName = "bld-003".parse().unwrap();
        let node = NodeFields {
            name: name.clone(),
            address: Some(Ipv4Addr::new(192, 0, 2, 77)),
            prefix: 24,
            mac: "9c:8e:99:00:03:01".parse().unwrap(),
            router: None,
            enclosure: None,
            bay: None,
            http: "192.0.2.1:8067".parse().ok(),
        };
        Templates::new([("debian".parse().unwrap(), payload)].into(), [(name, node)].into())
    }

    /// Where the node boots from: another address than the declared one.
    const AT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 99);

    fn make(templates: &Templates) -> Result<StoredScript, TemplateError> {
        let ticket = Ticket::from_random([0xab; 16]);
        templates.make(&"bld-003".parse().unwrap(), &"debian".parse().unwrap(), &ticket, AT)
    }

    #[test]
    fn arguments_know_node_ticket_and_call_back() {
        let args = "hostname={{ node.name }} done={{ volund.done }}";
        let script = make(&templates(Args::Template(args.to_owned()), "")).unwrap();
        let want = "hostname=bld-003 \
                    done=http://192.0.2.1:8067/t/abababababababababababababababab/done";
        assert_eq!(script.args, want);
    }

    #[test]
    fn the_agent_gets_url_ticket_and_address() {
        let script = make(&templates(Args::Agent("console=ttyS0".to_owned()), "")).unwrap();
        let want = "console=ttyS0 volund.url=http://192.0.2.1:8067 \
                    volund.ticket=abababababababababababababababab volund.ip=192.0.2.99/24";
        assert_eq!(script.args, want);
    }

    #[test]
    fn an_undefined_name_is_an_error_that_names_template_and_line() {
        let fault = make(&templates(Args::Template("a\n{{ node.rack }}".to_owned()), ""));
        let text = fault.unwrap_err().to_string();
        assert!(text.starts_with("debian args: line 2: undefined value"), "{text}");
    }

    #[test]
    fn a_line_break_in_arguments_cannot_become_a_command() {
        let fault = make(&templates(Args::Template("quiet\nshell".to_owned()), ""));
        assert_eq!(fault, Err(TemplateError::LineBreak("debian".parse().unwrap())));
    }
}
