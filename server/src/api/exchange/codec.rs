//! The node of a share in plans that travel: its bytes are those of the share.

use crate::query::{SHARE_NODE, ShareCounter, ShareExec};
use bytes::Bytes;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use std::sync::Arc;

/// Who decodes a share counts it; who only sends it has no counter.
#[derive(Debug, Default)]
pub(super) struct ShareCodec {
    pub(super) counter: Option<Arc<ShareCounter>>,
}

impl PhysicalExtensionCodec for ShareCodec {
    fn try_decode(
        &self,
        bytes: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        _: &TaskContext,
        _: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if !inputs.is_empty() {
            return Err(DataFusionError::Plan(format!("{SHARE_NODE} has no inputs")));
        }
        let share = Bytes::copy_from_slice(bytes);
        Ok(Arc::new(ShareExec::new(share, self.counter.clone())))
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        to: &mut Vec<u8>,
        _: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        let Some(share) = node.downcast_ref::<ShareExec>() else {
            return Err(DataFusionError::Plan(format!("{} is no {SHARE_NODE}", node.name())));
        };
        to.extend_from_slice(share.share());
        Ok(())
    }
}
